-- Tables of the analyst's own: subqueries and joins.
-- table: people

-- The paper's Q1.
select count(*)
      from people
      where (age > 16 and age < 17 or age > 55)
            and score > 91

-- The paper's Q2.
select count(*)
      from people
      where score > 98 and nationality in
            (select country from Regions
             where continent='Africa'
              and GDP < 10000)

select count(*) from people where nationality in (select country from regions)

select count(*) from people where nationality not in (select country from regions)

-- NOT IN a list with a NULL is never true.
select count(*) from people where "odd name" not in (select code from grades)

select count(*) from people where "odd name" in (select code from grades)

select count(*) from people where "odd name" not in (select code from grades where code is not null)

select count(*) from people where not (nationality in (select country from regions where gdp > 5000)) and age > 30

select count(*) from people where exists (select 1 from regions where country = nationality)

select count(*) from people where not exists (select * from regions r where r.country = nationality and r.gdp > 2200)

select count(*) from people where exists (select 1 from regions where country = people.nationality and gdp < 100 * people.age)

select count(*) from people where exists (select 1 from grades where score between low and high and grade = 'B')

select count(*) from people where score > (select avg(low) from grades)

select count(*) from people where score > (select max(low) from grades where grade <> 'A') and age < 40

select count(*) from people where score >= (select low from grades where grade = 'B')

select count(*) from people where (select gdp from regions where country = nationality) > 5000

select count(*) from people where (select count(*) from regions where country = nationality) = 0

select count(*) from people where score >= all (select low from grades where low is not null)

select count(*) from people where score = any (select low from grades)

select count(*) from people where nationality in (select country from regions where continent in (select continent from regions where country = 'Peru'))

select count(*) from people where nationality in (select country from regions order by gdp desc nulls last limit 3)

select count(*) from people where nationality in (select min(country) from regions group by continent having count(*) > 1)

select count(*) from people join regions on country = nationality

select count(*) from people join regions on regions.country = people.nationality where continent = 'Africa'

select count(*) from people p join regions r on r.country = p.nationality where r.gdp < 100 * p.age

select count(*) from people inner join regions as r on nationality = r.country and r.gdp > 2000

select count(*) from people left join regions on country = nationality

select count(*) from people left join regions on country = nationality where continent is null

select count(*) from people left outer join regions r on r.country = nationality where coalesce(r.gdp, 0) < 2200

select count(*) from people, regions where country = nationality and continent = 'Asia'

select count(*) from people, regions r where r.country = people.nationality and r.gdp > 2000 and people.age > 30

select continent, count(*), avg(score) from people join regions on country = nationality group by continent order by continent

select continent, count(*), avg(score) from people left join regions on country = nationality group by continent order by continent

select r.continent as k, count(*) as n from people p join regions r on p.nationality = r.country group by r.continent having count(*) > 50 order by n desc

select sum(gdp), avg(gdp), count(gdp), count(*) from people join regions on country = nationality

select avg(gdp / 1000 * score) from people left join regions on country = nationality where age > 30

select grade, count(*), avg(age) from people join grades on score between low and high group by grade order by grade

select grade, count(*) from people left join grades on score >= low and score <= high group by grade order by grade nulls first

select continent, grade, count(*) from people join regions on country = nationality join grades on score between low and high
group by continent, grade order by 1, 2

select case when gdp > 5000 then 'rich' when gdp <= 5000 then 'poor' else 'unknown' end as wealth, count(*), avg(score)
from people left join regions on country = nationality group by wealth order by wealth

select count(*) filter (where continent = 'Africa'), count(*) filter (where gdp > 5000) from people left join regions on country = nationality

select count(*) from people cross join regions where country = nationality and gdp > 10000

select (select max(gdp) from regions) > 1000 as rich, count(*) from people group by 1

select median(gdp) from people join regions on country = nationality

-- Many lookups in one formula: each of them is a subquery for the engine.
select continent, corr(gdp, low), stddev(gdp), covar_pop(low, score) from people join regions on country = nationality
join grades on score between low and high group by continent order by continent

select grade, avg(case when nationality in (select country from regions where gdp > 100 * age) then score else 0 end) as x
from people left join grades on score between low and high group by grade order by grade nulls first

select count(*) from people p join regions r on r.country = p.nationality where p.age > 30 and r.gdp in (2100, 2400)

-- A column goes before an alias of the same name.
select continent grade, count(*) from people join regions on country = nationality join grades on score between low and high
group by continent, grades.grade order by 1, 2
