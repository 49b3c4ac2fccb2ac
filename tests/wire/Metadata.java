import java.sql.*;

/** What tools ask of a driver before a person has asked anything, and then a person's question. */
public class Metadata {
    static void show(String title, ResultSet found, int... columns) throws SQLException {
        StringBuilder line = new StringBuilder(title).append(":");
        while (found.next())
            for (int column : columns) line.append(' ').append(found.getString(column));
        System.out.println(line);
    }

    public static void main(String[] given) throws Exception {
        try (Connection connection = DriverManager.getConnection(given[0], "anna", given[1])) {
            DatabaseMetaData about = connection.getMetaData();
            System.out.println(about.getDatabaseProductName() + " " + connection.getSchema());
            show("catalogs", about.getCatalogs(), 1);
            show("schemas", about.getSchemas(), 1);
            show("tables", about.getTables(connection.getCatalog(), "public", "%", new String[] {"TABLE"}), 3, 4);
            show("columns", about.getColumns(connection.getCatalog(), "public", "people", "%"), 4, 6, 17);
            show("keys", about.getPrimaryKeys(null, "public", "people"), 4);
            show("imported", about.getImportedKeys(null, "public", "people"), 4);
            show("indexes", about.getIndexInfo(null, "public", "people", false, true), 6);
            show("rights", about.getTablePrivileges(null, "public", "people"), 6);
            System.out.println("types: " + about.getTypeInfo().next() + " " + about.getSQLKeywords().isEmpty());
            String sql = "select sex, count(*) as n from people where age >= ? and city <> ? group by sex order by sex";
            try (PreparedStatement asked = connection.prepareStatement(sql)) {
                for (int time = 0; time < 6; time++) { // from the fifth on, the driver asks for bytes
                    asked.setInt(1, 30);
                    asked.setString(2, "Cork");
                    show("answer", asked.executeQuery(), 1, 2);
                }
            }
            connection.setAutoCommit(false);
            try (Statement few = connection.createStatement()) {
                few.setFetchSize(2); // portals that are suspended
                show("cities", few.executeQuery("select distinct city from people order by city"), 1);
                few.executeQuery("select nobody from people");
            } catch (SQLException wrong) {
                System.out.println("refused: " + wrong.getSQLState());
            }
            connection.rollback();
            System.out.println("valid: " + connection.isValid(5));
        }
    }
}
